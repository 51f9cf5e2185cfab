from spack.package import *


class PyRocrate(PythonPackage):
    """Makes and reads RO-Crates: research data packed with a description that machines read."""

    homepage = "https://github.com/ResearchObject/ro-crate-py"
    pypi = "rocrate/rocrate-0.16.0.tar.gz"

    license("Apache-2.0")

    version("0.16.0", sha256="eafd31adf0f6c0603eb68ff6e0f1f9f82028f7ffd345a7fe485eecee8240d485")

    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-setuptools@64:", type="build")
    depends_on("py-arcp@0.2.1", type=("build", "run"))
    depends_on("py-click", type=("build", "run"))
    depends_on("py-jinja2", type=("build", "run"))
    depends_on("py-python-dateutil", type=("build", "run"))
    depends_on("py-requests", type=("build", "run"))

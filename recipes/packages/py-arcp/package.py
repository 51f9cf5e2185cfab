from spack.package import *


class PyArcp(PythonPackage):
    """URIs that name files inside an archive, for RO-Crates."""

    homepage = "https://arcp.readthedocs.io"
    pypi = "arcp/arcp-0.2.1.tar.gz"

    license("Apache-2.0")

    version("0.2.1", sha256="5c17ac7972c9ef82979cc2caf2b3a87c1aefd3fefe9adb8a5dd728ada57715dd")

    depends_on("python@3.5:", type=("build", "run"))
    depends_on("py-setuptools", type="build")

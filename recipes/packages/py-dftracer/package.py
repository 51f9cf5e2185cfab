from spack.package import *


class PyDftracer(PythonPackage):
    """DFTracer 2: traces the I/O calls of a program (by a preload library) and of Python code.

    Upstream's sources fetch their own dependencies while they build, so this installs the published
    wheels: for x86_64 and glibc 2.28 or newer, one for each version of Python."""

    homepage = "https://dftracer.readthedocs.io"
    pypi = "dftracer/dftracer-2.2.0.tar.gz"

    license("MIT")

    version(
        "2.2.0-cp312",
        sha256="1996779558c765c0e2a3cce2c54638ce7e8bcf8507454ed4514c5aad041e6c21",
        expand=False,
    )
    version(
        "2.2.0-cp311",
        sha256="0faa69b07ae0a14b50e2fe375d9012117697d0c5793036d33a48b9961a622758",
        expand=False,
    )

    requires("target=x86_64:", msg="the published wheels of DFTracer are for x86_64")
    depends_on("python@3.12", type=("build", "run"), when="@2.2.0-cp312")
    depends_on("python@3.11", type=("build", "run"), when="@2.2.0-cp311")
    depends_on("py-dftracer-utils@0.0.13:", type=("build", "run"))
    depends_on("py-pydftracer@2.0.5:", type=("build", "run"))
    depends_on("py-typing-extensions@4:", type=("build", "run"))

    def url_for_version(self, version):
        release, tag = str(version).split("-")
        folder = self.url.rsplit("/", 1)[0].replace("/source/", f"/{tag}/")
        return f"{folder}/dftracer-{release}-{tag}-{tag}-manylinux_2_28_x86_64.whl"

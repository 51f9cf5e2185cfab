from spack.package import *


class PyDftracerUtils(PythonPackage):
    """Programs and Python bindings that validate, index and query DFTracer's files.

    Upstream's sources fetch their own dependencies while they build, so this installs the published
    wheels: for x86_64, one for each version of Python."""

    homepage = "https://github.com/llnl-asr/dftracer-utils"
    pypi = "dftracer-utils/dftracer_utils-0.0.14.tar.gz"

    license("MIT")

    version(
        "0.0.14-cp312",
        sha256="de0870a179deff202b0e2ae885e18b45445064e34c73cc217e37d59be54cf387",
        expand=False,
    )
    version(
        "0.0.14-cp311",
        sha256="d61ae8bf2d35bf5578cfd6748fa77b6ed9bb722fb6ab9511e466c5aa7fe9f805",
        expand=False,
    )

    requires("target=x86_64:", msg="the published wheels of DFTracer are for x86_64")
    depends_on("python@3.12", type=("build", "run"), when="@0.0.14-cp312")
    depends_on("python@3.11", type=("build", "run"), when="@0.0.14-cp311")

    def url_for_version(self, version):
        release, tag = str(version).split("-")
        folder = self.url.rsplit("/", 1)[0].replace("/source/", f"/{tag}/")
        platform = "manylinux_2_27_x86_64.manylinux_2_28_x86_64"
        return f"{folder}/dftracer_utils-{release}-{tag}-{tag}-{platform}.whl"

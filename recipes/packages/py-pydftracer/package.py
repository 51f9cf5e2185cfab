from spack.package import *


class PyPydftracer(PythonPackage):
    """The Python side of DFTracer, a tracer of I/O calls. From version 2 on it is pure Python and
    py-dftracer brings the library; version 1, which DLIO 2.0 names, contains both."""

    homepage = "https://github.com/llnl-asr/pydftracer"
    pypi = "pydftracer/pydftracer-2.0.6.tar.gz"
    git = "https://github.com/hariharan-devarajan/dftracer.git"

    license("MIT")

    version("2.0.6", sha256="9b30020d49f8f2b3c9027b1eda7ca2b612f5376972c6191caf7add256d4aa914")
    # As Spack's own recipe has it; this one takes its place because that one knows no version 2.
    version("1.0.2", tag="v1.0.2", commit="8a15f09ff54a909605eda0070689c0b99401db20")

    depends_on("python@3.9:", type=("build", "run"), when="@2:")
    depends_on("py-setuptools@80:", type="build", when="@2:")
    depends_on("py-setuptools-scm@8:", type="build", when="@2:")
    # 2.0.5 and later import it whatever the version of Python (declared for Python before 3.10 only).
    depends_on("py-typing-extensions@4:", type=("build", "run"), when="@2:")

    with when("@1"):
        depends_on("c", type="build")
        depends_on("cxx", type="build")
        depends_on("cmake@3.12:", type="build")
        depends_on("ninja", type="build")
        depends_on("py-setuptools@42:", type="build")
        depends_on("py-pybind11", type=("build", "run"))
        depends_on("cpp-logger@0.0.4")
        depends_on("brahma@0.0.5")
        depends_on("yaml-cpp@0.6.3")

    def setup_build_environment(self, env):
        if self.spec.satisfies("@1"):
            env.set("DFTRACER_INSTALL_DIR", self.prefix)
            env.set("DFTRACER_PYTHON_SITE", python_purelib)
            env.set("DFTRACER_BUILD_DEPENDENCIES", "0")

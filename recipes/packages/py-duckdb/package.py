from spack.package import *


class PyDuckdb(PythonPackage):
    """DuckDB, the in-process analytical database, as a Python module.

    Spack's duckdb builds the library and the program; its Python module left that source tree with
    version 1.4 and has a source distribution of its own."""

    homepage = "https://duckdb.org/docs/stable/clients/python/overview"
    pypi = "duckdb/duckdb-1.5.6.tar.gz"

    license("MIT")

    # Version 2 needs nanobind 3, which Spack lacks too.
    # The digest is that of the source distribution as pip gets it.
    version("1.5.6", sha256="166a91dbfacfc0c9f08cc76c0243cb6d3d4296bfab5bad72a3cfb63140a5b7c8")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.29:", type="build")
    depends_on("ninja@1.10:", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@0.11.4:", type="build")
    depends_on("py-pybind11@2.6:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")

    def setup_build_environment(self, env):
        # One compiler for each job takes up to 2 GB.
        env.set("CMAKE_BUILD_PARALLEL_LEVEL", str(make_jobs))

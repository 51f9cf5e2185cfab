import os

from spack.package import *


class TiercelCachevol(MakefilePackage):
    """cachevol, tiercel's HDF5 connector that stages writes and keeps reads on node-local storage.

    It is not linked to an HDF5 library: it uses the one of the program that loads it."""

    # The checkout that this recipe lies in; spack.yaml builds it in place (develop).
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("hdf5@1.14:")

    @property
    def build_directory(self):
        inside = os.path.join(self.stage.source_path, "native", "cachevol")
        return inside if os.path.isdir(inside) else self.stage.source_path

    @property
    def options(self):
        # Sites that share a checkout build beside each other. Nothing is fetched: the headers are Spack's.
        return [
            f"BUILD=build/{self.spec.dag_hash(7)}",
            f"HDF5_INCLUDE={self.spec['hdf5'].prefix.include}",
            "CARGO=none",
        ]

    def setup_build_environment(self, env):
        # hdf5 +mpi has mpi.h in its headers.
        if self.spec.satisfies("^hdf5+mpi"):
            env.append_flags("CPPFLAGS", self.spec["mpi"].headers.cpp_flags)

    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.cachevol)

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            make("all", *self.options)

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            make("install", f"BINDIR={prefix.bin}", f"LIBDIR={prefix.lib}", *self.options)

    @run_after("install")
    def connector_is_there(self):
        if not os.path.isfile(self.prefix.lib.cachevol.join("libcachevol.so")):
            raise InstallError("cachevol: the connector was left out: see the build's log")

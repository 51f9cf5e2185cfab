import os

from spack.package import *


class TiercelIokernel(MakefilePackage):
    """iokernel, tiercel's embedded I/O engine: IOR's and mdtest's options and semantics in C."""

    # The checkout that this recipe lies in; spack.yaml builds it in place (develop).
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Also build iokernel-mpi, for runs over several nodes")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi", when="+mpi")

    @property
    def build_directory(self):
        inside = os.path.join(self.stage.source_path, "native", "iokernel")
        return inside if os.path.isdir(inside) else self.stage.source_path

    @property
    def options(self):
        # Sites that share a checkout build beside each other.
        mpicc = self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else "none"
        return [f"BUILD=build/{self.spec.dag_hash(7)}", f"MPICC={mpicc}"]

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            make("all", *self.options)

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            make("install", f"BINDIR={prefix.bin}", f"LIBDIR={prefix.lib}", *self.options)

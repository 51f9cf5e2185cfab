import os

from spack.package import *


class TiercelReplay(MakefilePackage):
    """Re-issues the I/O of a traced application, for tiercel's placement."""

    # The checkout that this recipe lies in; spack.yaml builds it in place (develop).
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")

    @property
    def build_directory(self):
        inside = os.path.join(self.stage.source_path, "native", "replay")
        return inside if os.path.isdir(inside) else self.stage.source_path

    @property
    def options(self):
        # Sites that share a checkout build beside each other.
        return [f"BUILD=build/{self.spec.dag_hash(7)}"]

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            make("all", *self.options)

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            make("install", f"BINDIR={prefix.bin}", *self.options)

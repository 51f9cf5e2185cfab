import os

from spack.package import *


class TiercelFairshare(MakefilePackage):
    """fairshare, tiercel's policy-driven burst buffer: server, preload client, simulator.

    Cargo fetches the crates that Cargo.lock names by hash. Without network, give it a local copy first, in
    native/fairshare: mkdir .cargo; cargo vendor --locked > .cargo/config.toml (CARGO_HOME is Spack's own)."""

    # The checkout that this recipe lies in; spack.yaml builds it in place (develop).
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.82:", type="build")

    @property
    def build_directory(self):
        inside = os.path.join(self.stage.source_path, "native", "fairshare")
        return inside if os.path.isdir(inside) else self.stage.source_path

    def setup_build_environment(self, env):
        # Sites that share a checkout build beside each other.
        env.set("CARGO_TARGET_DIR", os.path.join(self.build_directory, "target", self.spec.dag_hash(7)))

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            make("all")

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            make("install", f"BINDIR={prefix.bin}", f"LIBDIR={prefix.lib}")

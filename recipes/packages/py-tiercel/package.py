import os
import shutil

from spack.package import *


class PyTiercel(PythonPackage):
    """tiercel: evaluates HPC storage end to end."""

    # The checkout that this recipe lies in; spack.yaml builds it in place (develop).
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    variant("iokernel", default=True, description="The embedded I/O engine, and the libraries for speed")
    variant("cluster", default=True, description="Analysis of traces on a Dask cluster")
    variant("slurm", default=True, description="Snakemake's executor for Slurm")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")

    # pyproject.toml's dependencies. Lower bounds are looser where Spack has older releases that pass
    # tiercel's tests (Snakemake 9.14, DuckDB 1.5, isal 1.1); MPI is the site's instead of a wheel.
    with default_args(type=("build", "run")):
        depends_on("py-darshan@3.4.4:3")
        depends_on("py-duckdb@1.5:")
        depends_on("py-h5netcdf@1.6:")
        depends_on("py-h5py@3.11:")
        depends_on("py-isal@1.1:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-matplotlib@3.9:")
        depends_on("py-mpi4py@4.1:")
        depends_on("py-numpy@2:")
        depends_on("py-packaging@:25")
        depends_on("py-pandas@2.2:")
        depends_on("py-pillow@10:")
        depends_on("py-pyarrow@17:")
        depends_on("py-pydantic@2.8:")
        depends_on("py-pyyaml@6:")
        depends_on("py-rich@13.7:")
        depends_on("py-rocrate@0.13:")
        depends_on("py-scikit-learn@1.6:")
        depends_on("py-scipy@1.13:")
        depends_on("py-seaborn@0.13.2:")
        depends_on("py-snakemake-executor-plugin-cluster-generic@1.0.9:1")
        depends_on("py-snakemake-executor-plugin-slurm@2.8:2", when="+slurm")
        depends_on("py-snakemake-interface-common@1.22:1")
        depends_on("py-typer@0.12:")
        depends_on("py-xarray@2024.10:")
        depends_on("py-distributed@2024.10:", when="+cluster")
        depends_on("snakemake@9.14:9")
        with when("+iokernel"):
            depends_on("tiercel-iokernel")
            depends_on("tiercel-dlkernel")
            depends_on("tiercel-replay")
            depends_on("tiercel-tracescan")

    @property
    def build_directory(self):
        # Outside the checkout: setuptools would leave its build folder there.
        return os.path.join(self.prefix, ".source")

    @property
    def checkout(self):
        # spack.yaml gives analysis/ (what Spack watches for changes); a clone gives the whole checkout.
        root = self.stage.source_path
        whole = os.path.isfile(os.path.join(root, "pyproject.toml"))
        return root if whole else os.path.dirname(os.path.realpath(root))

    @run_before("install")
    def copy_sources(self):
        root = self.checkout
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            mkdirp(self.build_directory)
            shutil.copy(os.path.join(root, name), self.build_directory)
        shutil.copytree(
            os.path.join(root, "analysis", "tiercel"),
            os.path.join(self.build_directory, "analysis", "tiercel"),
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )

    @run_after("install")
    def sites_and_workflow_are_there(self):
        # As setup.py puts them into a wheel: outside a checkout tiercel has its sites and studies from here.
        place = join_path(python_purelib, "tiercel", "builtin")
        mkdirp(place)
        shutil.copy(os.path.join(self.checkout, "Snakefile"), place)
        for name in ("site-configs", "workflows", "recipes"):
            shutil.copytree(
                os.path.join(self.checkout, name),
                os.path.join(place, name),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        for site in ("local", "slurm-virtual"):  # measured on the machine of the checkout
            facts = os.path.join(place, "site-configs", site, "facts.yaml")
            if os.path.exists(facts):
                os.remove(facts)

    @run_after("install")
    def remove_sources(self):
        shutil.rmtree(self.build_directory)

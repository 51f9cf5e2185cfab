from spack.package import *


class PySnakemakeExecutorPluginSlurmJobstep(PythonPackage):
    """Runs the steps inside a Slurm job (used by Snakemake's Slurm executor)."""

    homepage = "https://github.com/snakemake/snakemake-executor-plugin-slurm-jobstep"
    pypi = "snakemake-executor-plugin-slurm-jobstep/snakemake_executor_plugin_slurm_jobstep-0.6.1.tar.gz"

    license("MIT")

    # Spack has 0.2; the Slurm plugin that tiercel uses needs 0.6.
    version("0.6.1", sha256="0ed2feaa88d1d64f35dc66b4990f131d3f151733edece90d5e952dec0e8f7feb")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-poetry-core", type="build")
    depends_on("py-snakemake-interface-common@1.17.4:", type=("build", "run"))
    depends_on("py-snakemake-interface-executor-plugins@9.3.2:", type=("build", "run"))

from spack.package import *


class PySnakemakeExecutorPluginSlurm(PythonPackage):
    """Snakemake's executor for Slurm."""

    homepage = "https://github.com/snakemake/snakemake-executor-plugin-slurm"
    pypi = "snakemake-executor-plugin-slurm/snakemake_executor_plugin_slurm-2.8.0.tar.gz"

    license("MIT")

    # Spack has 0.11, which lacks the options that the sites' profiles give (slurm-status-command).
    version("2.8.0", sha256="97d931284b1452b6a7afd2f1b6d2002c278ce7a5e8f6a982dc77688817d30399")

    depends_on("python@3.11:3", type=("build", "run"))
    depends_on("py-hatchling", type="build")
    depends_on("py-numpy@2.4.5:2", type=("build", "run"))
    depends_on("py-pandas@2.3.3:3", type=("build", "run"))
    depends_on("py-pyyaml@6.0.3:6", type=("build", "run"))
    depends_on("py-snakemake-executor-plugin-slurm-jobstep@0.6:0", type=("build", "run"))
    depends_on("py-snakemake-interface-common@1.23:1", type=("build", "run"))
    depends_on("py-snakemake-interface-executor-plugins@9.4:9", type=("build", "run"))
    depends_on("py-throttler@1.2.2:1", type=("build", "run"))

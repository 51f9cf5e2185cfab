from spack.package import *


class PyDlioBenchmark(PythonPackage):
    """DLIO: the I/O of deep-learning applications as a benchmark."""

    homepage = "https://dlio-benchmark.readthedocs.io"
    pypi = "dlio-benchmark/dlio_benchmark-2.0.0.tar.gz"

    license("Apache-2.0")

    version("2.0.0", sha256="ab3bdb1304c4893c72ed4d310fc08ab97b16cb77732c77a2ee5ac7ccdb974783")

    # Upstream requires all frameworks on x86 and none on POWER. Each data loader imports its own when
    # it is chosen, so that a site without one of them still has the others.
    variant("pytorch", default=True, description="PyTorch's data loader")
    variant("tensorflow", default=False, description="TensorFlow's data loader, and TFRecord files")
    variant("dali", default=False, description="NVIDIA DALI's data loader")
    variant(
        "tracer",
        default="1",
        values=("1", "2"),
        multi=False,
        description="DFTracer: 1 as DLIO 2.0.0 declares it; 2 where the caller maps its module names",
    )

    depends_on("python@3.7:", type=("build", "run"))
    depends_on("py-setuptools@61:", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-pillow@9.3:")
        depends_on("py-pyyaml@6:")
        depends_on("py-h5py@3.11:")
        depends_on("py-hydra-core@1.3.2:")
        depends_on("py-mpi4py@3.1.4:")
        depends_on("py-numpy@1.23.5:")
        depends_on("py-omegaconf@2.2:")
        depends_on("py-pandas@1.5.1:")
        depends_on("py-psutil@5.9.8:")
        depends_on("py-pydftracer@1.0.2", when="tracer=1")
        depends_on("py-dftracer@2:", when="tracer=2")

        with when("+pytorch"):
            depends_on("py-torch@2.2:")
            depends_on("py-torchaudio")
            depends_on("py-torchvision")
        depends_on("py-tensorflow@2.11:", when="+tensorflow")
        depends_on("py-nvidia-dali@1.34:", when="+dali")

    # Hydra's configurations and the plugins are folders without code of their own.
    import_modules = ["dlio_benchmark"]

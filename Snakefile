# Many runs, here or on a cluster, with Snakemake's own executors (pip install snakemake, and the executor's plugin):
#
#   snakemake --cores 2                                                 here, every parameter file (most need a GPU)
#   snakemake --cores 2 results/sde2/toy/result.json                    here, one run
#   snakemake --executor slurm --jobs 8 --default-resources slurm_partition=gpu
#   snakemake --executor kubernetes --jobs 8 --default-storage-provider s3 --default-storage-prefix s3://bucket
#
# A job that was killed goes on from its last checkpoint (runs/, or $EXPLORL_RUNS) when Snakemake is called again.

CHAPTERS, RUNS = glob_wildcards("params/{chapter}/{run}.yaml")


def on_gpu(wildcards):
    return not wildcards.run.startswith(("toy", "smoke"))


rule all:
    input:
        expand("results/{chapter}/{run}/result.json", zip, chapter=CHAPTERS, run=RUNS),


rule run:
    input:
        "params/{chapter}/{run}.yaml",
    output:
        "results/{chapter}/{run}/result.json",
    threads: lambda wildcards: 1 if on_gpu(wildcards) else workflow.cores
    resources:
        gpu=lambda wildcards: int(on_gpu(wildcards)),
        mem_mb=16000,
    shell:
        "python -m explorl run {input} --out results"

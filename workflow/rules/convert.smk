rule convert:
    """
    Read a dataset's reference files, convert their units and split them.

    Needs the files under the dataset's `source` (or under `split`, where the splits are files); makes one HDF5
    store per split, and conversion.json with counts, unit factors and rejected frames.
    """
    input:
        source_files,
    output:
        train="results/datasets/{dataset}/train.h5",
        valid="results/datasets/{dataset}/valid.h5",
        test="results/datasets/{dataset}/test.h5",
        report="results/datasets/{dataset}/conversion.json",
    log:
        "results/logs/convert/{dataset}.log",
    benchmark:
        "results/benchmarks/convert/{dataset}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 4
    resources:
        **SMALL_JOB,
        mem_mb=2000,
        runtime=120,
    params:
        settings=settings("convert", "{dataset}"),
        directory=subpath(output.report, parent=True),
    message:
        "Converting dataset {wildcards.dataset} to HDF5"
    shell:
        'python "$SCRIPTS"/convert.py --config {params.settings:q} --dataset {wildcards.dataset:q}'
        " --output {params.directory:q} --jobs {threads} 2>&1 | tee {log:q}"

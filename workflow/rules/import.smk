rule import_model:
    """
    Bring a foundation model into forgefield's own format, or draw random weights for training from scratch.

    Needs the file under the model's `foundation`, or the module of a model of architecture python, if there is one;
    makes the model's description and weights, and import.json with their origin and the largest difference from the
    original's energies and forces.
    """
    input:
        foundation_files,
        code_of,
    output:
        model="results/models/{model}/model.json",
        weights="results/models/{model}/weights.safetensors",
        report="results/models/{model}/import.json",
    log:
        "results/logs/import/{model}.log",
    benchmark:
        "results/benchmarks/import/{model}.tsv"
    conda:
        "../../envs/fabric.yaml"
    threads: 2
    resources:
        **SMALL_JOB,
        mem_mb=4000,
        runtime=60,
    params:
        settings=settings("import", "{model}"),
        directory=subpath(output.report, parent=True),
    message:
        "Importing model {wildcards.model}"
    shell:
        'python "$SCRIPTS"/import_model.py --config {params.settings:q} --model {wildcards.model:q}'
        " --output {params.directory:q} 2>&1 | tee {log:q}"

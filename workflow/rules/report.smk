rule report:
    """
    Compare all evaluated runs in results/runs on one page.

    Needs the metrics, predictions, settings, provenance and plots of these runs; makes one HTML file that needs no
    network.
    """
    input:
        reported(),
    output:
        report(
            "results/report.html",
            caption="../report/report.rst",
            category="Comparison of runs",
        ),
    log:
        "results/logs/report/report.log",
    benchmark:
        "results/benchmarks/report/report.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        **SMALL_JOB,
        mem_mb=4000,
        runtime=60,
    message:
        "Writing the report"
    shell:
        'python "$SCRIPTS"/report.py --output {output:q} 2>&1 | tee {log:q}'

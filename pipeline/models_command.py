"""`framescribe models`: the registry as a table, one model in full, or as JSON."""

from __future__ import annotations

import argparse
import json

from pipeline.models.registry import load_spec, model_types
from pipeline.models.resolved import EXAMPLE_QUESTION, resolved
from pipeline.models.spec import ModelSpec
from pipeline.models.versions import specifiers


def add_models_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    text = "list the model types, or show one as it would be used"
    models = commands.add_parser("models", help=text, description=text)
    models.add_argument("name", nargs="?", help="a model type, or the path of a spec; default: all")
    models.add_argument("--json", action="store_true", help="for programs")
    models.add_argument("--question", default=EXAMPLE_QUESTION, help="asked in the prompts shown")
    models.set_defaults(command=show_models)


def show_models(arguments: argparse.Namespace) -> int:
    """Prints what was asked for.

    Raises:
        ConfigError: no such model type, or a faulty spec.
    """
    if arguments.json:
        specs = {name: load_spec(name) for name in ([arguments.name] if arguments.name else model_types())}
        shown = {name: resolved(spec, arguments.question) for name, spec in specs.items()}
        print(json.dumps(shown[arguments.name] if arguments.name else shown, indent=2, ensure_ascii=False))
    elif arguments.name:
        print("\n".join(_in_full(load_spec(arguments.name), arguments.question)))
    else:
        for name in model_types():
            spec = load_spec(name)
            where = spec.repository or "any, by model.path"
            print(f"{name:<20} {', '.join(spec.modalities):<28} {proof(spec):<20} {where}")
    return 0


def proof(spec: ModelSpec) -> str:
    """What was shown of a spec: that it runs on vLLM's engine, or that it says what the seed says."""
    if spec.vllm.max:
        return f"needs vLLM <= {spec.vllm.max}"
    return f"proven on {spec.proven}" if spec.proven else "conformance only"


def _in_full(spec: ModelSpec, question: str) -> list[str]:
    needs = [f"vllm{specifiers(spec.vllm)}", *spec.requires]
    if spec.trust_remote_code:
        needs.append("model.trust_remote_code=true and a pinned model.revision")
    facts = {
        "repository": spec.repository or "any, by model.path",
        "takes": ", ".join(spec.modalities),
        "needs": ", ".join(needs),
        "shown": proof(spec),
        "engine": spec.engine_args,
        "example sizes": spec.example_engine_args,
        "stops at": [*spec.stop_token_ids, *spec.stop_tokens],
        "sampling": spec.sampling,
        "LoRA": spec.lora.model_dump() if spec.lora else None,
        "question": "ignored: its prompt has no place for one" if spec.ignores_question else None,
        "notes": spec.notes,
    }
    lines = [f"{title:<14} {value}" for title, value in facts.items() if value]
    for modality, used in resolved(spec, question)["modalities"].items():
        key = "prompt" if "prompt" in used else "chat_messages"
        lines.append(f"{modality:<14} {used[key]!r}")
    return [*lines, *(f"seed's {kind:<7} {prompt!r}" for kind, prompt in spec.seed_prompt.items())]

"""An independent reading of the seed: a web dump of vLLM's vision-language example, its indentation lost.

Nothing of it is executed. Lines are numbered, `|` is written `\\|`. Each `run_…` function is indented again
by the language's own rules (each branch of its ifs holds one statement), parsed by `ast`, and worked out by a
small interpreter that knows the few forms that these functions use.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

SEED = REPOSITORY.parent / "shared" / "seeds" / "000_304391eee8374bd7.txt"
SECOND_SEED = SEED.with_name("002_52d61156d8458b67.txt")
CASES = Path(__file__).with_name("seed_cases.json")
"""What `seed_cases` found, kept so that the specs are held against it where the dump is not."""
QUESTION = 'What — {media} {n} <b>\\n</b> — is "this"?'
_MODALITIES = ("image", "video", "image+video", "vision_chunk")
_HEADER = re.compile(r":\s*(#.*)?$")
_UNUSED = {"image": 0, "video": 0, "audio": 0, "vision_chunk": 0}


class NotTaken(Exception):
    """The seed does not take this modality: an assertion fails, or a variable is never set."""


@dataclass(frozen=True)
class Symbol:
    """What only a model's files could tell, by how the seed asks for it: a tokenizer, a token's id."""

    name: str


def seed_cases(path: Path = SEED) -> dict[str, dict[str, Any]]:
    """Model type → modality → what the seed says, as `pipeline.models.resolved` words it."""
    functions = _functions(path)
    (source,) = re.findall(
        r"^model_example_map = (\{.*?^\})", "\n".join(_lines(path)), re.MULTILINE | re.DOTALL
    )
    table = ast.parse(source, mode="eval").body
    assert isinstance(table, ast.Dict)
    types = {
        key.value: value.id
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Name)
    }
    return {
        name: {
            modality: case
            for modality in _MODALITIES
            if (case := _case(functions, function, modality)) is not None
        }
        for name, function in types.items()
    }


def metadata_and_graph_lists(path: Path = SEED) -> tuple[list[str], list[str]]:
    """The seed's lists of models: those that need a video's metadata, those with CUDA graphs of their ViT."""
    text = "\n".join(_lines(path))
    found = [
        ast.literal_eval(re.findall(rf"^{name} = (\[.*?^\])", text, re.MULTILINE | re.DOTALL)[0])
        for name in ("MODELS_NEED_VIDEO_METADATA", "MODELS_SUPPORT_VIT_CUDA_GRAPH")
    ]
    return found[0], found[1]


def second_seed_engine_args(name: str) -> dict[str, Any]:
    """The engine arguments of one of the models that only the older copy has."""
    text = SECOND_SEED.read_text("utf-8")
    (call,) = re.findall(rf"def run_{name}\(.*?engine_args = (EngineArgs\(.*?\n    \))", text, re.DOTALL)
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    return {
        one.arg: one.value.value
        for one in node.keywords
        if one.arg and isinstance(one.value, ast.Constant)  # not what the command line decides
    }


def _lines(path: Path) -> Iterator[str]:
    for line in path.read_text("utf-8").splitlines():
        numbered = re.match(r"\d+\t(.*)", line)
        if numbered:
            yield numbered.group(1).replace("\\|", "|")


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _lines(path):
        if line.startswith("def "):
            current = found.setdefault(re.split(r"[ (]", line)[1], [])
        elif re.match(r"(class|@|model_example_map|if __name__)", line):
            current = None
        if current is not None:
            current.append(line)
    return {
        name: node
        for name, lines in found.items()
        if name.startswith("run_")
        for node in ast.parse(_indented(lines)).body
        if isinstance(node, ast.FunctionDef)
    }


def _indented(lines: list[str]) -> str:
    """The function with its indentation: logical lines are found by their brackets and triple quotes."""
    logical, pending = [], ""
    for line in lines:
        pending = f"{pending}\n{line}" if pending else line
        if pending.strip() and _complete(pending):
            logical.append(pending)
            pending = ""
    out, branch = [logical[0]], False
    for statement in logical[1:]:
        if re.match(r"(if|elif|else)\b", statement):
            out.append(f"  {statement}")
            branch = True
        elif not statement.lstrip().startswith("#"):
            out.append(f"{'    ' if branch else '  '}{statement}")
            branch = False
    return "\n".join(out)


def _complete(text: str) -> bool:
    body = f"{text}\n pass" if _HEADER.search(text.splitlines()[-1]) or text.startswith("def ") else text
    body = f"if 0: pass\n{body}" if body.startswith(("elif", "else")) else body
    try:
        ast.parse(body)
    except SyntaxError:
        return False
    return True


def _case(functions: Mapping[str, ast.FunctionDef], name: str, modality: str) -> dict[str, Any] | None:
    try:
        found = _Call(functions).run(name, [QUESTION], modality)
    except NotTaken:
        return None
    engine = found["engine_args"]
    (asked,) = found["prompts"]
    stops = found.get("stop_token_ids") or []
    words = (
        {"chat_messages": asked["chat"], "via": asked["via"]} if isinstance(asked, dict) else {"prompt": asked}
    )
    return {
        "engine_args": {**engine, "limit_mm_per_prompt": {**_UNUSED, **engine["limit_mm_per_prompt"]}},
        **words,
        "stop_token_ids": [stop for stop in stops if not isinstance(stop, Symbol)],
        "stop_tokens": [stop.name for stop in stops if isinstance(stop, Symbol)],
        "sampling_params": (found.get("sampling_params") or [{}])[0],
        "lora_requests": found.get("lora_requests") or [],
    }


class _Call:
    """One call of one function: its variables, and what its expressions come to."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]) -> None:
        self._functions = functions
        self._names: dict[str, Any] = {}

    def run(self, name: str, *values: Any) -> Any:
        function = self._functions[name]
        self._names = dict(zip((argument.arg for argument in function.args.args), values, strict=True))
        return self._block(function.body)

    def _block(self, statements: list[ast.stmt]) -> Any:
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._names[name] = self._value(value)
                case ast.Assert(test=test):
                    if not self._value(test):
                        raise NotTaken(ast.unparse(test))
                case ast.If(test=test, body=body, orelse=orelse):
                    self._block(body if self._value(test) else orelse)
                case ast.Return(value=ast.expr() as value):
                    return self._value(value)
                case ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise NotImplementedError(ast.unparse(statement))
        return None

    def _value(self, node: ast.expr) -> Any:  # noqa: PLR0912
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id="NGramPerReqLogitsProcessor"):
                return "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"
            case ast.Name(id=name):
                if name not in self._names:
                    raise NotTaken(name)
                return self._names[name]
            case ast.JoinedStr(values=values):
                return "".join(self._value(value) for value in values)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return str(self._value(value))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._value(left) + self._value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._value(left) * self._value(right)
            case ast.List(elts=values) | ast.Tuple(elts=values):
                return [self._value(value) for value in values]
            case ast.Set(elts=values):
                return sorted(self._value(value) for value in values)
            case ast.Dict(keys=keys, values=values):
                return {self._value(k): self._value(v) for k, v in zip(keys, values, strict=True) if k}
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test) else orelse)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self._compared(self._value(left), operator, self._value(right))
            case ast.ListComp(elt=element, generators=[generator]):
                return self._list(element, generator)
            case ast.Attribute(value=owner, attr="eos_token_id"):
                assert isinstance(self._value(owner), Symbol)
                return Symbol("{eos}")
            case ast.Call(func=function, args=positional, keywords=named):
                return self._call(
                    ast.unparse(function),
                    [self._value(one) for one in positional],
                    {one.arg: self._value(one.value) for one in named},
                )
        raise NotImplementedError(ast.unparse(node))

    @staticmethod
    def _compared(left: Any, operator: ast.cmpop, right: Any) -> bool:
        match operator:
            case ast.Eq():
                return bool(left == right)
            case ast.In():
                return left in right
            case ast.IsNot():
                return left is not right
        raise NotImplementedError(operator)

    def _list(self, element: ast.expr, generator: ast.comprehension) -> list[Any]:
        assert isinstance(generator.target, ast.Name)
        out = []
        for value in self._value(generator.iter):
            self._names[generator.target.id] = value
            if all(self._value(condition) for condition in generator.ifs):
                out.append(self._value(element))
        return out

    def _call(self, name: str, positional: list[Any], named: dict[Any, Any]) -> Any:
        match name:
            case "EngineArgs" | "ModelRequestData" | "SamplingParams" | "dict":
                return named
            case "LoRARequest":
                return dict(zip(("lora_name", "lora_int_id", "lora_path"), positional, strict=True))
            case "snapshot_download":
                return positional[0]
            case "os.path.join":
                return "/".join(positional)
            case "AutoTokenizer.from_pretrained" | "AutoProcessor.from_pretrained":
                return Symbol(name.split(".", maxsplit=1)[0].removeprefix("Auto").lower())
            case "tokenizer.convert_tokens_to_ids":
                return Symbol(positional[0])
            case "tokenizer.apply_chat_template" | "processor.apply_chat_template":
                assert named == {"tokenize": False, "add_generation_prompt": True}
                (messages,) = positional
                via = self._names[name.split(".", maxsplit=1)[0]].name
                several = isinstance(messages[0], list)
                made = [{"chat": chat, "via": via} for chat in (messages if several else [messages])]
                return made if several else made[0]
        return _Call(self._functions).run(name, *positional)


if __name__ == "__main__":
    CASES.write_text(json.dumps(seed_cases(), indent=1, ensure_ascii=False) + "\n", "utf-8")

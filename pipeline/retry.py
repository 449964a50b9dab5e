"""Plans to ask again what failed, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pipeline.config_file import load_config
from pipeline.errors import ConfigError
from pipeline.manifest import Shard
from pipeline.plan import Plan, make_plan
from pipeline.results.lineage import RECIPE_FILE
from pipeline.stages.read import Work
from pipeline.storage import join

_NOT_OF_A_RECIPE = ("manifest.", "output.", "storage.", "engine.", "cache.")
_OF_A_RECIPE = ("output.accept_truncated", "engine.kind")
_READERS = 8


def plan_retry(
    config: str, overrides: Sequence[str], codes: Collection[str] = (), recipe: str | None = None
) -> Plan:
    """The plan that does failed rows of finished shards again, with all that an ordinary run would do.

    Where the overrides make another recipe, its results are those of the recipe without them, with the failed
    rows asked anew; the old recipe's stay as they are.

    Args:
        config: path of the run's YAML.
        codes: only rows that failed with one of these; empty: all failed rows.
        recipe: id of the recipe to start from; None: the one of the configuration without the overrides that
            change answers.

    Raises:
        ConfigError: as `make_plan`, and if there is nothing to start from.
    """
    plan = make_plan(load_config(config, overrides))
    if recipe is None:
        kept = [one for one in overrides if one.startswith(_NOT_OF_A_RECIPE)]
        kept = [one for one in kept if not one.startswith(_OF_A_RECIPE)]
        recipe = plan.recipe.id if kept == list(overrides) else make_plan(load_config(config, kept)).recipe.id
    bases = _bases(plan, recipe)
    own = plan.ledger.scan()
    with ThreadPoolExecutor(_READERS) as pool:
        found = pool.map(lambda shard: _failed(plan, shard, bases[shard.name], codes), plan.shards)
        failed = {shard.name: pairs for shard, pairs in zip(plan.shards, found, strict=True)}
    size = plan.config.output.batch_rows
    again = [Work.to_do_again(s, failed[s.name], size) for s in plan.shards if failed[s.name]]
    others = [one for one in plan.work if bases[one.shard.name] is None]
    copies = [
        s.name
        for s in plan.shards
        if bases[s.name] and not failed[s.name] and (s.name not in own.shards or s.name in own.again)
    ]
    work = [*others, *again]
    return replace(
        plan,
        work=work,
        to_finish=sorted({*(n for n in plan.to_finish if bases[n] is None), *copies}),
        bases={s.name: base for s in plan.shards if (base := bases[s.name]) and s.name not in own.shards},
        done_rows=plan.manifest.rows - sum(one.rows for one in work),
    )


def _bases(plan: Plan, recipe: str) -> dict[str, str | None]:
    """Where each shard's rows are now: in this recipe's folder, else in that of the recipe to start from."""
    folder = join(plan.config.output.uri, f"recipe={recipe}")
    if recipe != plan.recipe.id and not plan.storage.find(join(folder, RECIPE_FILE)):
        names = sorted({_recipe_of(info.uri) for info in plan.storage.find(plan.config.output.uri)} - {""})
        raise ConfigError(
            [
                f"there are no results of recipe {recipe} in {plan.config.output.uri} to start from; "
                f"name one by --from: {', '.join(names) or 'there is none'}"
            ]
        )
    found: dict[str, str | None] = dict.fromkeys(shard.name for shard in plan.shards)
    for ledger in (replace(plan.ledger, folder=folder), plan.ledger):
        found |= {name: ledger.shard_uri(name) for name in ledger.scan().shards if name in found}
    return found


def _failed(plan: Plan, shard: Shard, base: str | None, codes: Collection[str]) -> list[tuple[int, str]]:
    if base is None:
        return []
    return plan.ledger.failed_rows(base, codes, plan.ledger.done_again(shard.name))


def _recipe_of(uri: str) -> str:
    folder = uri.rpartition("/")[0].rpartition("/")[2]
    return folder.removeprefix("recipe=") if folder.startswith("recipe=") else ""

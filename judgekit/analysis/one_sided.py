"""Cases without an output, and outputs without a case."""

from collections.abc import Collection, Sequence

from judgekit.core.errors import InputError


def ids_on_one_side(
    case_ids: Sequence[str], output_ids: Collection[str], source: str, *, missing_is_empty: bool
) -> list[tuple[str, str]]:
    """Warnings, as (code, message), about cases without an output and outputs without a case.

    Args:
        case_ids: ids of all cases.
        output_ids: case ids of all outputs.
        source: names the file of outputs in messages.
        missing_is_empty: a case without an output retrieved nothing, and is no error.

    Raises:
        InputError: not one output belongs to a case.
    """
    if list(case_ids) == list(output_ids):
        return []
    known, found = set(case_ids), set(output_ids)
    missing = [case_id for case_id in case_ids if case_id not in found]
    unknown = [case_id for case_id in output_ids if case_id not in known]
    if missing and len(missing) == len(case_ids):
        example = f"such as {unknown[0]!r}" if unknown else "none at all"
        raise InputError(
            f"{source}: no output belongs to a case; cases have ids such as {missing[0]!r}, outputs {example}; "
            'map the right field with "fields": {"case_id": ...}'
        )
    both = f" (cases {len(case_ids)}, outputs {len(output_ids)}, both {len(case_ids) - len(missing)})"
    warnings = []
    if missing:
        effect = "; nothing was retrieved there, which counts as 0" if missing_is_empty else ""
        warnings.append(("cases_without_output", f"{source}: no output for {_named(missing)}{effect}{both}"))
    if unknown:
        warnings.append(("outputs_without_case", f"{source}: no case for {_named(unknown)}{both}"))
    return warnings


def check_positions(
    case_ids: Collection[str], output_ids: Collection[str], numbered: Collection[str], source: str
) -> None:
    """Refuse to join by position what may not belong together.

    Args:
        case_ids: ids of all cases.
        output_ids: case ids of all outputs.
        numbered: "cases" and "outputs", where rows without ids got their positions.
        source: names the file of outputs in messages.

    Raises:
        InputError: there are more or fewer outputs than cases, or the ids of one side are not the positions.
    """
    if not numbered or set(case_ids) == set(output_ids):
        return
    if len(set(numbered)) == 2:
        found = f"neither cases nor outputs have ids, and {len(case_ids)} cases and {len(output_ids)} outputs"
    else:
        found = f"{next(iter(numbered))} have no ids, and their positions and the ids of the others"
    raise InputError(
        f'{source}: {found} cannot be joined by their order; give both an id, or name it with "fields": '
        '{"id": ...} of cases and {"case_id": ...} of outputs'
    )


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(case_id) for case_id in ids[:20])
    more = f" ... and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"{len(ids)} of them: {shown}{more}" if len(ids) > 1 else shown

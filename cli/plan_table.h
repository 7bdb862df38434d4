/* plan_table.h - the plan of a network as a table. */
#ifndef THEO_CLI_PLAN_TABLE_H
#define THEO_CLI_PLAN_TABLE_H

#include "json_out.h"
#include <theo/inspect.h>

/* To stdout. times: least time and rate of each operation instead of bytes and places. */
void plan_print(const theo_plan_report *plan, bool times);

/* "plan": {"ops": [...], "arena_bytes", "scratch_bytes", "flops"} */
void json_member_plan(json_out *json, const theo_plan_report *plan);

#endif

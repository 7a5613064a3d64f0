/* schedule/pipeline/pipeline_rows.c: the table of pipelines. schedule/pipeline/pipeline.h describes its columns. */
#include "schedule/pipeline/pipeline.h"

static const struct pipeline pipelines[CHOICE_PIPELINE_COUNT] = {
#define PIPELINE(choice, order, ...) [CHOICE_PIPELINE_##choice] = {__VA_ARGS__},
#include "schedule/pipeline/pipelines.def"
#undef PIPELINE
};

const struct pipeline *pipeline_of_choice(enum pipeline_choice choice)
{
    return &pipelines[choice];
}

const struct pipeline *pipeline_of_choices(const struct choices *c)
{
    return &pipelines[c->pipeline];
}

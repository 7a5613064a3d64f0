/* tests/predict/test_shell.c: the reader of shell scripts: which conditions hold. */
#include "predict/launch/shell.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* Reads "if CONDITION; then yes; else no; fi". Returns the branch that runs ("yes" or "no"), or "open". */
static const char *branch_of_shell_condition(const char *condition)
{
    struct shell_script script = {0};
    struct diag diag = {0};
    char text[256];
    const char *branch = "none";
    snprintf(text, sizeof text, "if %s; then\n yes\nelse\n no\nfi\n", condition);
    CHECK_INT(condition, shell_script_read(&script, "f", text, strlen(text), &diag), STATUS_OK);
    CHECK_TEXT(condition, diag.text, NULL);
    for (size_t i = 0; i < script.command_count; i++) {
        const struct shell_command *command = &script.command[i];
        const char *name = command->word[0].text;
        if (strcmp(name, "yes") == 0 || strcmp(name, "no") == 0)
            branch = command->runs_conditionally ? "open" : name[0] == 'y' ? "yes" : "no";
    }
    shell_script_release(&script);
    diag_release(&diag);
    return branch;
}

static const struct {
    const char *condition, *branch;
} conditions[] = {
    /* within [[ ]], && binds tighter than || */
    {"[[ 1 = 1 || 1 = 1 && 1 = 2 ]]", "yes"},
    {"[[ 1 = 1 || $A = 1 && 1 = 2 ]]", "yes"},
    {"[[ 1 = 2 || 1 = 1 && 1 = 2 ]]", "no"},
    {"[[ 1 = 2 && 1 = 1 || 1 = 1 ]]", "yes"},
    {"[[ 1 = 1 || 1 = 2 && 1 = 2 || 1 = 2 ]]", "yes"},
    {"[[ $A = 1 || 1 = 1 && 1 = 2 ]]", "open"},
    /* and ! binds tighter than both */
    {"[[ ! 1 = 1 || 1 = 1 ]]", "yes"},
    {"[[ ! 1 = 1 && 1 = 2 ]]", "no"},
    {"[[ ! ! 1 = 1 ]]", "yes"},
    /* parentheses group */
    {"[[ ( 1 = 1 || 1 = 1 ) && 1 = 2 ]]", "no"},
    {"[[ (1 = 2 || 1 = 1 || 1 = 2) && 1 = 2 ]]", "no"},
    {"[[ ((1 = 2 || 1 = 1) && 1 = 1) ]]", "yes"},
    {"[[ ! (1 = 1 && 1 = 2) ]]", "yes"},
    {"[[ (1 = 1 && $A = 2) || 1 = 1 ]]", "yes"},
    {"[[ x =~ ^(a||b)$ || 1 = 1 ]]", "yes"},
    {"[[ x =~ ^(a|b)$ && 1 = 1 ]]", "open"},
    {"[[ ( 1 = 1 ]]", "open"},
    {"[[ 1 = 1 ) ]]", "open"},
    {"[[ 1 = 1 && ]]", "open"},
    /* a line end within [[ ]] is a blank */
    {"[[ 1 = 2 ||\n 1 = 1 && 1 = 1 ]]", "yes"},
    {"[[\n 1 = 2\n || 1 = 2 ]]", "no"},
    /* between commands, both have the same precedence */
    {"[[ 1 = 1 ]] || [[ 1 = 1 ]] && [[ 1 = 2 ]]", "no"},
    {"[ 1 = 1 ] || [ 1 = 1 ] && [ 1 = 2 ]", "no"},
    {"test 1 = 1 || test 1 = 1 && test 1 = 2", "no"},
    {"[ 1 = 2 ] && [ 1 = 1 ] || [ 1 = 1 ]", "yes"},
    {"! [ 1 = 1 ] || [ 1 = 1 ]", "yes"},
    /* a text in quotes is no operator of [ ] */
    {"[ '&&' = '&&' ]", "yes"},
    {"test a = '||'", "no"},
};

static void a_condition_holds_as_in_bash(void)
{
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
        CHECK_TEXT(conditions[i].condition, branch_of_shell_condition(conditions[i].condition),
                   conditions[i].branch);
}

static const struct check_case cases[] = {
    {"a condition holds as in bash", a_condition_holds_as_in_bash},
};
CHECK_MAIN("shell", cases)

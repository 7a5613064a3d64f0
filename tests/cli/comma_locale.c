/* tests/cli/comma_locale.c: a library that tests/cli/comma_locale.sh preloads into the program, which then runs in the
 * locale that TEST_LOCALE names, as a program that calls longhaul's library may. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void)
{
    const char *name = getenv("TEST_LOCALE");
    if (name == NULL || setlocale(LC_ALL, name) == NULL) {
        fprintf(stderr, "comma_locale: there is no locale '%s'\n", name != NULL ? name : "");
        _Exit(3);
    }
}

/* tests/exec/near/near.c: a small library that tests search for and open. */
int near_number(void);

int near_number(void)
{
    return 1;
}

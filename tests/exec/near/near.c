/* A library that is there to be found. */
int near_number(void);

int near_number(void)
{
    return 1;
}

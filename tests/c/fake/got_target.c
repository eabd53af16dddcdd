/* What the libraries of the GOT tests call. */
int got_answer(int x)
{
    return x + 1;
}

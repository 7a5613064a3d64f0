/* cli/common/progress.h: a line on the terminal that says how far a long command is. Where standard error
 * is no terminal, nothing is printed. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

/* Makes every later search (predict/progress.h) show its progress in a line on the terminal. */
void progress_show_on_terminal(void);

/* Shows which part of a command is running and for how long the command has run, for parts of unknown length: every
 * second, after the first two seconds. The text `what` must stay valid; NULL: the command is done, and the line is
 * erased. SIGALRM is in use meanwhile. */
void progress_part(const char *what);

#endif

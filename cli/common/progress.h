/* cli/common/progress.h: a line on the terminal that says how far a long command is. Where standard error
 * is no terminal, nothing is printed. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

/* From now on every search (predict/progress.h) has its line on the terminal. */
void progress_show_on_terminal(void);

/* Says which part of a command is at work, where nobody can say how long it takes, and since when the command
 * is: from two seconds on, every second. what stays where it is; NULL: the command is done, and the line goes.
 * Meanwhile SIGALRM is taken. */
void progress_part(const char *what);

#endif

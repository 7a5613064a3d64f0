/* cli/common/progress.h: shows the progress of a long command in a line on the terminal. Nothing is printed if standard
 * error is not a terminal. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

/* Makes every later search (predict/progress.h) show its progress in a line on the terminal. */
void progress_show_on_terminal(void);

/* Shows which part of a command is running, and the seconds since the first part began: after two
 * seconds for the first time, and then every second. It is for parts of unknown length. The text
 * `what` must stay valid while it is shown. what NULL: no part is running any more, and the line is
 * erased. While a part is shown, the signal SIGALRM is in use. */
void progress_show_running_part_seconds(const char *what);

#endif

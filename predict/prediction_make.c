/* predict/prediction_make.c: a whole prediction: first its memory, then its time. */
#include "predict/prediction.h"

enum status prediction_make(struct prediction *p, const struct prediction_question *question,
                            struct diag *diag)
{
    enum status status = prediction_memory(p, question, NULL, diag);
    if (status == STATUS_OK)
        status = prediction_time(p, diag);
    return status;
}

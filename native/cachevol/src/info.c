/* The connector's info: "config=FILE;under_vol=VALUE;under_info={...}", each part of which may be left out. */
#include "object.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static herr_t info_free(void *pointer)
{
    struct cv_info *info   = pointer;
    hid_t           errors = cv_errors_keep();

    if (info->info)
        h5.H5VLfree_connector_info(info->vol, info->info);
    h5.H5Idec_ref(info->vol);
    cv_errors_back(errors);
    free(info->config);
    free(info);
    return 0;
}

static void *info_copy(const void *pointer)
{
    const struct cv_info *from = pointer;
    struct cv_info       *to   = calloc(1, sizeof *to);

    if (!to)
        return NULL;
    to->vol = from->vol;
    h5.H5Iinc_ref(to->vol);
    if (from->info)
        h5.H5VLcopy_connector_info(from->vol, &to->info, from->info);
    to->config  = from->config ? strdup(from->config) : NULL;
    to->missing = from->missing;
    return to;
}

static herr_t info_cmp(int *value, const void *a, const void *b)
{
    const struct cv_info *x = a, *y = b;

    *value = 0;
    h5.H5VLcmp_connector_cls(value, x->vol, y->vol);
    if (!*value)
        h5.H5VLcmp_connector_info(value, x->vol, x->info, y->info);
    if (!*value)
        *value = strcmp(x->config ? x->config : "", y->config ? y->config : "");
    return 0;
}

static herr_t info_to_str(const void *pointer, char **text)
{
    const struct cv_info *info  = pointer;
    H5VL_class_value_t    value = -1;
    char                 *below = NULL;

    h5.H5VLget_value(info->vol, &value);
    h5.H5VLconnector_info_to_str(info->info, info->vol, &below);
    size_t room = 80 + (below ? strlen(below) : 0) + (info->config ? strlen(info->config) : 0);
    *text       = h5.H5allocate_memory(room, false);
    if (!*text)
        return -1;
    snprintf(*text, room, "%s%s%sunder_vol=%u;under_info={%s}", info->config ? "config=" : "",
             info->config ? info->config : "", info->config ? ";" : "", (unsigned)value, below ? below : "");
    return 0;
}

/* The text of `key=` up to the next `;` (or, of the last part, between its braces), as memory to free. */
static char *part(const char *text, const char *key)
{
    const char *at = text;

    while ((at = strstr(at, key)) && at != text && at[-1] != ';' && at[-1] != ' ')
        at++;
    if (!at)
        return NULL;
    at += strlen(key);
    if (*at == '{') {
        const char *end = strrchr(at, '}');
        return end ? strndup(at + 1, (size_t)(end - at - 1)) : NULL;
    }
    return strndup(at, strcspn(at, ";"));
}

#define ASYNC 512 /* the HDF5 Async VOL, which only passes on: the original needs it below */

/* The connector below, of the text `under_vol=N;under_info={...}`. Of the Async VOL, where it is not there, the one below
   it: what it does, migrating in the background, cachevol does by itself. Another one that is not there is told of when a
   file is opened: its files may lie elsewhere, and HDF5 does not survive it here. */
static void find_below(struct cv_info *info, const char *text)
{
    char *value = part(text, "under_vol="), *below = part(text, "under_info=");
    hid_t errors = cv_errors_keep();
    int   number = value ? atoi(value) : 0;

    H5E_auto2_t print;
    void       *context;
    h5.H5Eget_auto2(H5E_DEFAULT, &print, &context); /* one sentence is enough */
    h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    info->vol = value ? h5.H5VLregister_connector_by_value((H5VL_class_value_t)number, H5P_DEFAULT) : cv_native();
    h5.H5Eset_auto2(H5E_DEFAULT, print, context);
    if (info->vol < 0 && number == ASYNC) {
        find_below(info, below ? below : "");
    } else if (info->vol < 0) {
        fprintf(stderr, "cachevol: HDF5_VOL_CONNECTOR: the connector in \"%s\" is not there\n", text);
        info->vol     = cv_native();
        info->missing = number ? number : -1;
    } else if (below && *below) {
        h5.H5VLconnector_str_to_info(below, info->vol, &info->info);
    }
    cv_errors_back(errors);
    free(value);
    free(below);
}

static herr_t info_from_str(const char *text, void **result)
{
    struct cv_info *info = calloc(1, sizeof *info);

    if (!info)
        return -1;
    info->config = part(text, "config=");
    find_below(info, text);
    cv_session_configure(info->config);
    *result = info;
    return 0;
}

const H5VL_info_class_t cv_info_class = {sizeof(struct cv_info), info_copy, info_cmp, info_free, info_to_str,
                                         info_from_str};

#include "tap.h"

#include "json/shape.h"

static const struct shape_field port_fields[] = {
    { STR_INIT("name"), &shape_scalar },
    { STR_INIT("port"), &shape_scalar },
};
static const struct shape port = { SHAPE_OBJ, .fields = port_fields, .n_fields = 2 };

static void members_are_found(void)
{
    OK(shape_field(&port, S("port")) == &port_fields[1]);
    OK(shape_field(&port, S("por")) == NULL && shape_field(NULL, S("port")) == NULL);
    OK(shape_member(&port, S("name")) == &shape_scalar && !shape_member(&port, S("other")));
    OK(shape_member(&shape_scalar_map, S("whatever")) == &shape_scalar);
    OK(shape_member(&shape_any, S("whatever")) == &shape_any);
}

static void unknown_goes_by_the_value(void)
{
    auto_arena struct arena a = { 0 };
    const struct shape *map = shape_for(&shape_any, json_new_obj(&a));
    const struct shape *list = shape_for(&shape_any, json_new_arr(&a));
    OK(map->kind == SHAPE_OBJ && !map->atomic && map->element == &shape_any);
    OK(list->kind == SHAPE_LIST && list->list == SHAPE_ATOMIC_LIST);
    OK(shape_for(&shape_any, json_new_int(&a, 1))->kind == SHAPE_SCALAR);
    OK(shape_for(&shape_any, json_new_null(&a))->kind == SHAPE_OBJ);
    OK(shape_for(&port, json_new_arr(&a)) == &port);
}

static void strategies_are_words(void)
{
    EQ_INT(shape_patch_parse(S("")), SHAPE_PATCH_DEFAULT);
    EQ_INT(shape_patch_parse(S("replace")), SHAPE_PATCH_REPLACE);
    EQ_INT(shape_patch_parse(S("merge,retainKeys")), SHAPE_PATCH_MERGE | SHAPE_PATCH_RETAIN_KEYS);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(members_are_found), TAP(unknown_goes_by_the_value), TAP(strategies_are_words), { 0 } });
}

/* Opcodes: CPython Lib/pickletools.py. What torch means by them: torch/serialization.py, torch/_utils.py. */
#include "formats/pickle.h"

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/text.h"

#include <string.h>

enum {
    LARGEST_PICKLE = 16 << 20, /* a thousand tensors need about 100 KB */
    LARGEST_STACK = 16384,     /* the pickler sends lists and dicts in batches of 1000 */
    LARGEST_MARKS = 256,       /* MARKs that are open at once: nested batches and tuples */
    LARGEST_MEMO = 1 << 20
};

typedef enum class_kind { CLASS_DICT, CLASS_NAMESPACE, CLASS_STORAGE, CLASS_TENSOR, CLASS_PARAMETER } class_kind;

/* The allow-list. */
static const struct {
    const char *module, *name;
    class_kind kind;
    theo_dtype dtype; /* of a storage */
} classes[] = {
    {"collections", "OrderedDict", CLASS_DICT, 0},
    {"argparse", "Namespace", CLASS_NAMESPACE, 0},
    {"torch._utils", "_rebuild_tensor_v2", CLASS_TENSOR, 0},
    {"torch._utils", "_rebuild_parameter", CLASS_PARAMETER, 0},
    {"torch", "FloatStorage", CLASS_STORAGE, THEO_DTYPE_F32},
    {"torch", "HalfStorage", CLASS_STORAGE, THEO_DTYPE_F16},
    {"torch", "BFloat16Storage", CLASS_STORAGE, THEO_DTYPE_BF16},
    {"torch", "DoubleStorage", CLASS_STORAGE, THEO_DTYPE_F64},
    {"torch", "LongStorage", CLASS_STORAGE, THEO_DTYPE_I64},
    {"torch", "IntStorage", CLASS_STORAGE, THEO_DTYPE_I32},
    {"torch", "BoolStorage", CLASS_STORAGE, THEO_DTYPE_BOOL},
};

enum { CLASSES = sizeof classes / sizeof classes[0] };

typedef struct machine {
    const uint8_t *start, *at, *end;
    const uint8_t *opcode; /* the one being carried out, for messages */
    const char *file, *record;
    theo_bump *memory;
    theo_error *err;
    theo_value *stack[LARGEST_STACK];
    int marks[LARGEST_MARKS]; /* stack heights */
    int height, mark_count;
    theo_value **memo;
    size_t memo_capacity;
    size_t items; /* that containers hold, all together */
    const theo_storage *storages;
} machine;

/* ---------------------------------------------------------------- failures */

static theo_status fail(const machine *m, theo_status status, const char *what) {
    return theo_fail(m->err, status, m->file, m->record, "byte %zu: %s", (size_t)(m->opcode - m->start), what);
}

static theo_status malformed(const machine *m, const char *what) {
    return fail(m, THEO_PICKLE, what);
}

static theo_status out_of_memory(const machine *m) {
    return fail(m, THEO_MEMORY, "out of memory");
}

/* ---------------------------------------------------------------- reading and the stack */

/* `count` bytes of the argument of the opcode. */
static theo_status take(machine *m, size_t count, const uint8_t **bytes) {
    *bytes = m->at;
    if ((size_t)(m->end - m->at) < count)
        return malformed(m, "the pickle ends inside of an argument");
    m->at += count;
    return THEO_OK;
}

static theo_status push(machine *m, theo_value *value) {
    if (m->height == LARGEST_STACK)
        return malformed(m, "the stack grows over 16384 values");
    m->stack[m->height++] = value;
    return THEO_OK;
}

static theo_status push_new(machine *m, theo_value value) {
    theo_value *copy = theo_bump_alloc(m->memory, 1, sizeof *copy);
    if (!copy)
        return out_of_memory(m);
    *copy = value;
    return push(m, copy);
}

/* Values above the newest mark. */
static int floor_of(const machine *m) {
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static theo_status pop(machine *m, theo_value **value) {
    *value = NULL;
    if (m->height <= floor_of(m))
        return malformed(m, "the stack is empty");
    *value = m->stack[--m->height];
    return THEO_OK;
}

static theo_status top(const machine *m, theo_value **value) {
    *value = NULL;
    if (m->height <= floor_of(m))
        return malformed(m, "the stack is empty");
    *value = m->stack[m->height - 1];
    return THEO_OK;
}

/* Takes the newest mark away; *first is the place of the values above it. */
static theo_status pop_mark(machine *m, int *first) {
    *first = 0;
    if (!m->mark_count)
        return malformed(m, "there is no mark on the stack");
    *first = m->marks[--m->mark_count];
    return THEO_OK;
}

/* No honest pickle spends less than a byte on an item: the limit stops those that copy one big dict with each BUILD. */
static theo_status append(machine *m, theo_value *to, const theo_value *key, const theo_value *value) {
    if (++m->items > (size_t)(m->at - m->start))
        return malformed(m, "it unfolds into more items than it has bytes");
    theo_item *item = theo_bump_alloc(m->memory, 1, sizeof *item);
    if (!item)
        return out_of_memory(m);
    *item = (theo_item){.key = key, .value = value};
    if (to->last)
        to->last->next = item;
    else
        to->first = item;
    to->last = item;
    to->count++;
    return THEO_OK;
}

/* ---------------------------------------------------------------- opcodes */

static theo_status push_string(machine *m, size_t length) {
    const uint8_t *bytes;
    THEO_TRY(take(m, length, &bytes));
    for (size_t i = 0, n; i < length; i += n) {
        n = theo_utf8_length((const char *)bytes + i, length - i);
        if (!n || !bytes[i])
            return malformed(m, "a string is not valid UTF-8 or contains a zero byte");
    }
    char *string = theo_bump_text(m->memory, (const char *)bytes, length);
    if (!string)
        return out_of_memory(m);
    return push_new(m, (theo_value){.type = THEO_VALUE_STRING, .string = string});
}

/* LONG1: little-endian two's complement. */
static theo_status push_long(machine *m, size_t length) {
    const uint8_t *bytes;
    THEO_TRY(take(m, length, &bytes));
    if (length > 8)
        return malformed(m, "an integer has more than 64 bits");
    uint64_t value = length && bytes[length - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = length; i-- > 0;)
        value = value << 8 | bytes[i];
    return push_new(m, (theo_value){.type = THEO_VALUE_INTEGER, .integer = (int64_t)value});
}

static theo_status push_float(machine *m) {
    const uint8_t *bytes;
    THEO_TRY(take(m, 8, &bytes));
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) /* big-endian */
        bits = bits << 8 | bytes[i];
    theo_value value = {.type = THEO_VALUE_FLOAT};
    memcpy(&value.number, &bits, sizeof bits);
    return push_new(m, value);
}

/* A line of GLOBAL's argument, without its newline: printable ASCII, since it may stand in a message. */
static theo_status take_line(machine *m, const char **line, size_t *length) {
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end)
        return malformed(m, "the pickle ends inside of an argument");
    for (const uint8_t *c = m->at; c < end; c++)
        if (*c < 0x20 || *c > 0x7e)
            return malformed(m, "a name is not printable ASCII");
    *line = (const char *)m->at;
    *length = (size_t)(end - m->at);
    m->at = end + 1;
    return THEO_OK;
}

static bool equals(const char *text, size_t length, const char *word) {
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static theo_status push_global(machine *m) {
    const char *module, *name;
    size_t module_length, name_length;
    THEO_TRY(take_line(m, &module, &module_length));
    THEO_TRY(take_line(m, &name, &name_length));
    for (int i = 0; i < CLASSES; i++)
        if (equals(module, module_length, classes[i].module) && equals(name, name_length, classes[i].name))
            return push_new(m, (theo_value){.type = THEO_VALUE_CLASS, .class_index = i});
    return theo_fail(m->err, THEO_SECURITY, m->file, m->record,
                     "byte %zu: the pickle asks for \"%.*s.%.*s\", which a checkpoint of numbers does not need; it was not "
                     "loaded and nothing was run",
                     (size_t)(m->opcode - m->start), (int)(module_length < 80 ? module_length : 80), module,
                     (int)(name_length < 80 ? name_length : 80), name);
}

static theo_status put_memo(machine *m, size_t index) {
    theo_value *value;
    THEO_TRY(top(m, &value));
    if (index >= LARGEST_MEMO)
        return malformed(m, "a memo slot is over 1048575");
    if (index >= m->memo_capacity) {
        size_t capacity = m->memo_capacity ? m->memo_capacity : 256;
        while (capacity <= index)
            capacity *= 2;
        theo_value **memo = theo_realloc(m->memo, capacity, sizeof *memo);
        if (!memo)
            return out_of_memory(m);
        memset(memo + m->memo_capacity, 0, (capacity - m->memo_capacity) * sizeof *memo);
        m->memo = memo;
        m->memo_capacity = capacity;
    }
    m->memo[index] = value;
    return THEO_OK;
}

static theo_status get_memo(machine *m, size_t index) {
    if (index >= m->memo_capacity || !m->memo[index])
        return malformed(m, "a memo slot is read that was never written");
    return push(m, m->memo[index]);
}

/* The values from `first` on become a tuple in their place. */
static theo_status push_tuple(machine *m, int first) {
    theo_value tuple = {.type = THEO_VALUE_TUPLE};
    for (int i = first; i < m->height; i++)
        THEO_TRY(append(m, &tuple, NULL, m->stack[i]));
    m->height = first;
    return push_new(m, tuple);
}

static theo_status push_small_tuple(machine *m, int count) {
    if (m->height - floor_of(m) < count)
        return malformed(m, "the stack has too few values for a tuple");
    return push_tuple(m, m->height - count);
}

static theo_status push_mark(machine *m) {
    if (m->mark_count == LARGEST_MARKS)
        return malformed(m, "more than 256 marks are open at once: nested too deeply");
    m->marks[m->mark_count++] = m->height;
    return THEO_OK;
}

/* APPEND and APPENDS: values from `first` on go into the list below them. */
static theo_status append_from(machine *m, int first) {
    if (first <= floor_of(m) || m->stack[first - 1]->type != THEO_VALUE_LIST)
        return malformed(m, "elements are appended to what is not a list");
    for (int i = first; i < m->height; i++)
        THEO_TRY(append(m, m->stack[first - 1], NULL, m->stack[i]));
    m->height = first;
    return THEO_OK;
}

/* SETITEM and SETITEMS: keys and values from `first` on go into the dict below them. */
static theo_status set_from(machine *m, int first) {
    if (first <= floor_of(m) || m->stack[first - 1]->type != THEO_VALUE_DICT)
        return malformed(m, "items are set in what is not a dict");
    if ((m->height - first) % 2)
        return malformed(m, "a key without a value");
    for (int i = first; i < m->height; i += 2)
        THEO_TRY(append(m, m->stack[first - 1], m->stack[i], m->stack[i + 1]));
    m->height = first;
    return THEO_OK;
}

/* ---------------------------------------------------------------- what torch builds */

/* Up to `limit` elements of a tuple; their number, or -1 if it is none or longer. */
static int spread(const theo_value *tuple, const theo_value **out, int limit) {
    if (tuple->type != THEO_VALUE_TUPLE || tuple->count > limit)
        return -1;
    int n = 0;
    for (const theo_item *item = tuple->first; item; item = item->next)
        out[n++] = item->value;
    return n;
}

/* Persistent id: ("storage", class, key, location, elements[, None]). The last one, of the legacy layout, names a view of another
 * storage. */
static theo_status push_storage(machine *m) {
    theo_value *id;
    const theo_value *part[6];
    THEO_TRY(pop(m, &id));
    int n = spread(id, part, 6);
    if (n < 5 || part[0]->type != THEO_VALUE_STRING || strcmp(part[0]->string, "storage") != 0 ||
        part[1]->type != THEO_VALUE_CLASS || classes[part[1]->class_index].kind != CLASS_STORAGE ||
        part[2]->type != THEO_VALUE_STRING || part[4]->type != THEO_VALUE_INTEGER)
        return malformed(m, "a persistent id is not (\"storage\", class, key, location, elements)");
    if (n == 6 && part[5]->type != THEO_VALUE_NONE)
        return fail(m, THEO_UNSUPPORTED, "a storage that is a view of another one");
    theo_storage *storage = theo_bump_alloc(m->memory, 1, sizeof *storage);
    if (!storage)
        return out_of_memory(m);
    *storage = (theo_storage){part[2]->string, classes[part[1]->class_index].dtype, part[4]->integer, m->storages};
    m->storages = storage;
    return push_new(m, (theo_value){.type = THEO_VALUE_STORAGE, .storage = storage});
}

/* A tuple of integers; their number, or -1. */
static int take_sizes(const theo_value *tuple, int64_t *out) {
    const theo_value *part[THEO_MAX_RANK];
    int n = spread(tuple, part, THEO_MAX_RANK);
    for (int i = 0; i < n; i++) {
        if (part[i]->type != THEO_VALUE_INTEGER)
            return -1;
        out[i] = part[i]->integer;
    }
    return n;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]) */
static theo_status push_tensor(machine *m, const theo_value *arguments) {
    const theo_value *part[7];
    int n = spread(arguments, part, 7);
    if (n < 6 || part[0]->type != THEO_VALUE_STORAGE || part[1]->type != THEO_VALUE_INTEGER || part[2]->type != THEO_VALUE_TUPLE)
        return malformed(m, "_rebuild_tensor_v2 needs a storage, an offset, sizes and strides");
    if (part[2]->count > THEO_MAX_RANK)
        return fail(m, THEO_UNSUPPORTED, "a tensor has more than 8 dimensions");
    theo_tensor *tensor = theo_bump_alloc(m->memory, 1, sizeof *tensor);
    if (!tensor)
        return out_of_memory(m);
    tensor->storage = part[0]->storage;
    tensor->offset = part[1]->integer;
    tensor->rank = take_sizes(part[2], tensor->shape);
    if (tensor->rank < 0 || take_sizes(part[3], tensor->stride) != tensor->rank)
        return malformed(m, "a tensor's sizes and strides must be as many integers");
    return push_new(m, (theo_value){.type = THEO_VALUE_TENSOR, .tensor = tensor});
}

/* OrderedDict(), or as Python 2 wrote it: OrderedDict([[key, value], ...]). */
static theo_status push_dict(machine *m, const theo_value *arguments) {
    theo_value dict = {.type = THEO_VALUE_DICT};
    if (arguments->count > 1 || (arguments->count && arguments->first->value->type != THEO_VALUE_LIST))
        return malformed(m, "OrderedDict takes nothing or a list of pairs");
    for (const theo_item *pair = arguments->count ? arguments->first->value->first : NULL; pair; pair = pair->next) {
        const theo_value *p = pair->value;
        if ((p->type != THEO_VALUE_LIST && p->type != THEO_VALUE_TUPLE) || p->count != 2)
            return malformed(m, "OrderedDict takes nothing or a list of pairs");
        THEO_TRY(append(m, &dict, p->first->value, p->last->value));
    }
    return push_new(m, dict);
}

/* REDUCE and NEWOBJ: a class and the tuple of its arguments. */
static theo_status call(machine *m) {
    theo_value *arguments, *callee;
    THEO_TRY(pop(m, &arguments));
    THEO_TRY(pop(m, &callee));
    if (callee->type != THEO_VALUE_CLASS || arguments->type != THEO_VALUE_TUPLE)
        return malformed(m, "what is called is not a class with a tuple of arguments");
    switch (classes[callee->class_index].kind) {
    case CLASS_DICT:
        return push_dict(m, arguments);
    case CLASS_NAMESPACE:
        if (arguments->count)
            return malformed(m, "Namespace takes no arguments");
        return push_new(m, (theo_value){.type = THEO_VALUE_NAMESPACE});
    case CLASS_TENSOR:
        return push_tensor(m, arguments);
    case CLASS_PARAMETER: /* _rebuild_parameter(tensor, requires_grad, hooks): the tensor */
        if (!arguments->count || arguments->first->value->type != THEO_VALUE_TENSOR)
            return malformed(m, "_rebuild_parameter needs a tensor");
        return push_new(m, *arguments->first->value);
    case CLASS_STORAGE:
        break;
    }
    return malformed(m, "a storage class is called");
}

/* BUILD: a Namespace takes the attributes of the dict. On an OrderedDict it sets `_metadata`, module versions that nothing here
 * needs. */
static theo_status build(machine *m) {
    theo_value *state, *object;
    THEO_TRY(pop(m, &state));
    THEO_TRY(top(m, &object));
    if (state->type != THEO_VALUE_DICT || (object->type != THEO_VALUE_NAMESPACE && object->type != THEO_VALUE_DICT))
        return malformed(m, "attributes are set on what has none");
    if (object->type == THEO_VALUE_NAMESPACE)
        for (const theo_item *item = state->first; item; item = item->next)
            THEO_TRY(append(m, object, item->key, item->value));
    return THEO_OK;
}

/* ---------------------------------------------------------------- the machine */

/* Opcodes with a length or an index before their argument. */
static theo_status step_sized(machine *m, uint8_t opcode) {
    const uint8_t *p;
    bool wide = opcode == 'X' || opcode == 'T' || opcode == 'r' || opcode == 'j';
    THEO_TRY(take(m, wide ? 4 : 1, &p));
    size_t n = wide ? theo_get32(p) : p[0];
    switch (opcode) {
    case 'X': /* BINUNICODE */
    case 'T': /* BINSTRING, SHORT_BINSTRING: str of Python 2 */
    case 'U':
        return push_string(m, n);
    case 0x8a: /* LONG1 */
        return push_long(m, n);
    case 'q': /* BINPUT, LONG_BINPUT */
    case 'r':
        return put_memo(m, n);
    default: /* BINGET, LONG_BINGET */
        return get_memo(m, n);
    }
}

static theo_status step(machine *m, uint8_t opcode) {
    const uint8_t *p;
    int first;
    switch (opcode) {
    case 0x80: /* PROTO */
        THEO_TRY(take(m, 1, &p));
        return p[0] == 2 ? THEO_OK : malformed(m, "only pickle protocol 2 is allowed");
    case '}':
        return push_new(m, (theo_value){.type = THEO_VALUE_DICT});
    case ']':
        return push_new(m, (theo_value){.type = THEO_VALUE_LIST});
    case ')':
        return push_new(m, (theo_value){.type = THEO_VALUE_TUPLE});
    case 'N':
        return push_new(m, (theo_value){.type = THEO_VALUE_NONE});
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_new(m, (theo_value){.type = THEO_VALUE_BOOL, .truth = opcode == 0x88});
    case 'K': /* BININT1, BININT2, BININT */
        THEO_TRY(take(m, 1, &p));
        return push_new(m, (theo_value){.type = THEO_VALUE_INTEGER, .integer = p[0]});
    case 'M':
        THEO_TRY(take(m, 2, &p));
        return push_new(m, (theo_value){.type = THEO_VALUE_INTEGER, .integer = theo_get16(p)});
    case 'J':
        THEO_TRY(take(m, 4, &p));
        return push_new(m, (theo_value){.type = THEO_VALUE_INTEGER, .integer = (int32_t)theo_get32(p)});
    case 'G':
        return push_float(m);
    case 'X':
    case 'T':
    case 'U':
    case 0x8a:
    case 'q':
    case 'r':
    case 'h':
    case 'j':
        return step_sized(m, opcode);
    case '(':
        return push_mark(m);
    case 't': /* TUPLE */
        THEO_TRY(pop_mark(m, &first));
        return push_tuple(m, first);
    case 0x85: /* TUPLE1, TUPLE2, TUPLE3 */
    case 0x86:
    case 0x87:
        return push_small_tuple(m, opcode - 0x84);
    case 'a': /* APPEND, APPENDS */
        return m->height ? append_from(m, m->height - 1) : malformed(m, "the stack is empty");
    case 'e':
        THEO_TRY(pop_mark(m, &first));
        return append_from(m, first);
    case 's': /* SETITEM, SETITEMS */
        return m->height > 1 ? set_from(m, m->height - 2) : malformed(m, "the stack is empty");
    case 'u':
        THEO_TRY(pop_mark(m, &first));
        return set_from(m, first);
    case 'c':
        return push_global(m);
    case 'Q':
        return push_storage(m);
    case 'R': /* REDUCE, NEWOBJ */
    case 0x81:
        return call(m);
    case 'b':
        return build(m);
    default:
        return theo_fail(m->err, THEO_PICKLE, m->file, m->record, "byte %zu: opcode 0x%02x is not allowed in a checkpoint",
                         (size_t)(m->opcode - m->start), opcode);
    }
}

static theo_status run(machine *m, theo_pickle *pickle) {
    if (m->end - m->start > LARGEST_PICKLE)
        m->end = m->start + LARGEST_PICKLE;
    for (;;) {
        m->opcode = m->at;
        if (m->at == m->end)
            return malformed(m, "the pickle has no end (STOP), or none within 16 MiB");
        uint8_t opcode = *m->at++;
        if (opcode == '.')
            break;
        THEO_TRY(step(m, opcode));
    }
    theo_value *root;
    THEO_TRY(pop(m, &root));
    if (m->height || m->mark_count)
        return malformed(m, "values are left on the stack at the end");
    *pickle = (theo_pickle){root, m->storages, (size_t)(m->at - m->start)};
    return THEO_OK;
}

theo_status theo_pickle_parse(theo_pickle *pickle, theo_bump *memory, const uint8_t *data, size_t bytes, const char *file,
                              const char *record, theo_error *err) {
    *pickle = (theo_pickle){0};
    machine *m = theo_alloc(1, sizeof *m);
    if (!m)
        return theo_fail(err, THEO_MEMORY, file, record, "out of memory");
    m->start = m->at = m->opcode = data;
    m->end = data + bytes;
    m->file = file;
    m->record = record;
    m->memory = memory;
    m->err = err;
    theo_status status = run(m, pickle);
    theo_free(m->memo);
    theo_free(m);
    return status;
}

const theo_value *theo_value_get(const theo_value *dict, const char *key) {
    const theo_value *found = NULL;
    if (dict->type == THEO_VALUE_DICT || dict->type == THEO_VALUE_NAMESPACE)
        for (const theo_item *item = dict->first; item; item = item->next)
            if (item->key->type == THEO_VALUE_STRING && strcmp(item->key->string, key) == 0)
                found = item->value;
    return found;
}

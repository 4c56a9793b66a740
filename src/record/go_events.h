/* go_events.h - the events of Go's execution traces (Go 1.22) that go.c writes and apps/cc-trace reads. */
#ifndef CC_RECORD_GO_EVENTS_H
#define CC_RECORD_GO_EVENTS_H

enum {
    EV_EVENT_BATCH = 1,
    EV_STACKS = 2,
    EV_STACK = 3,
    EV_STRINGS = 4,
    EV_STRING = 5,
    EV_FREQUENCY = 8,
    EV_PROC_STATUS = 13,
    EV_GO_CREATE = 14,
    EV_GO_START = 16,
    EV_GO_DESTROY = 17,
    EV_GO_STOP = 19,
    EV_GO_BLOCK = 20,
    EV_GO_UNBLOCK = 21,
    EV_GO_STATUS = 25,
    EV_GO_LABEL = 39,
    EV_USER_TASK_BEGIN = 40,
    EV_USER_TASK_END = 41,
    EV_USER_REGION_BEGIN = 42,
    EV_USER_REGION_END = 43,
    EV_USER_LOG = 44,
    EV_COUNT,
};

#endif

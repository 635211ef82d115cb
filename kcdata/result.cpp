#include "kcdata/result.hpp"

namespace kcdata {

const char* kern_return_name(kern_return code) {
    switch (code) {
        case KERN_SUCCESS:
            return "KERN_SUCCESS";
        case KERN_INVALID_ADDRESS:
            return "KERN_INVALID_ADDRESS";
        case KERN_NO_SPACE:
            return "KERN_NO_SPACE";
        case KERN_INVALID_ARGUMENT:
            return "KERN_INVALID_ARGUMENT";
        case KERN_FAILURE:
            return "KERN_FAILURE";
        case KERN_RESOURCE_SHORTAGE:
            return "KERN_RESOURCE_SHORTAGE";
        case KERN_NO_ACCESS:
            return "KERN_NO_ACCESS";
        case KERN_ALREADY_IN_SET:
            return "KERN_ALREADY_IN_SET";
        case KERN_NOT_IN_SET:
            return "KERN_NOT_IN_SET";
        case KERN_ABORTED:
            return "KERN_ABORTED";
        case KERN_INVALID_NAME:
            return "KERN_INVALID_NAME";
        case KERN_INVALID_VALUE:
            return "KERN_INVALID_VALUE";
        case KERN_INVALID_OBJECT:
            return "KERN_INVALID_OBJECT";
        case KERN_MEMORY_PRESENT:
            return "KERN_MEMORY_PRESENT";
        case KERN_LOCK_OWNED:
            return "KERN_LOCK_OWNED";
        case KERN_NOT_SUPPORTED:
            return "KERN_NOT_SUPPORTED";
        case KERN_OPERATION_TIMED_OUT:
            return "KERN_OPERATION_TIMED_OUT";
        case KERN_INSUFFICIENT_BUFFER_SIZE:
            return "KERN_INSUFFICIENT_BUFFER_SIZE";
    }
    return "unknown kern_return";
}

}  // namespace kcdata

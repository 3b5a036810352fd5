package org.millrace.plugin;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What was set for NCCL in the process's environment, of which there is one for all NCCLs of the process: what one
 * needs is set when it initializes a communicator, and what was set for another before, and it does not need, is taken
 * back.
 */
final class NcclEnvironment {

    private final Map<String, String> set = new HashMap<>();

    /** A variable as the user has it; null if it is not set, or was set here. */
    synchronized @Nullable String users(String name) {
        String value = NativeEnvironment.get(name);
        return value != null && value.equals(set.get(name)) ? null : value;
    }

    /** Sets what is wanted, and takes back what is not, for NCCL to read next. */
    synchronized void use(Map<String, String> wanted) {
        set.entrySet().removeIf(each -> {
            boolean superfluous = !wanted.containsKey(each.getKey());
            if (superfluous && each.getValue().equals(NativeEnvironment.get(each.getKey()))) {
                NativeEnvironment.unset(each.getKey());
                NcclLog.info("unset " + each.getKey() + ", which was set for another NCCL of this process");
            }
            return superfluous;
        });
        wanted.forEach((name, value) -> {
            String now = NativeEnvironment.get(name);
            if (!value.equals(set.put(name, value)) || now == null || now.isEmpty()) {
                NativeEnvironment.set(name, value);
                NcclLog.info("set " + name + "=" + value);
            }
        });
    }
}

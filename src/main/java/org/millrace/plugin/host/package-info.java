/**
 * The plugin's access to the process that loaded it: NCCL's memory by address, the environment variables, NCCL's log,
 * and the version of the calling NCCL. It also contains this process's share of the processor cores, and the handles by
 * which NCCL refers to Java objects.
 */
@NullMarked
package org.millrace.plugin.host;

import org.jspecify.annotations.NullMarked;

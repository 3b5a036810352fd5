/**
 * View of the process that loaded the plugin, shared by all parts of the plugin. It covers NCCL's memory by addresses,
 * the environment variables, NCCL's log, and the version of the calling NCCL. It also covers the processor cores, and
 * the handles that NCCL keeps for objects of Java.
 */
@NullMarked
package org.millrace.plugin.host;

import org.jspecify.annotations.NullMarked;

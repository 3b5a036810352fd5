/**
 * View of the process that loaded the plugin, which all parts of the plugin share: NCCL's memory by addresses, the
 * environment variables, NCCL's log, the version of the calling NCCL, the cores, and the handles that NCCL keeps for
 * objects of Java.
 */
@NullMarked
package org.millrace.plugin.host;

import org.jspecify.annotations.NullMarked;

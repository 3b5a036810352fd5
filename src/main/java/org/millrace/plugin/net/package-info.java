/**
 * NCCL's network table: {@link org.millrace.plugin.net.NetPlugin} has a method for each of its functions.
 *
 * <p>
 * It makes connections by the networks of {@code org.millrace.net}. Who moves their data is decided by a
 * {@link org.millrace.plugin.net.DataPath}: the packages {@code takeover} and {@code fallback} have one each. What it
 * reads from the environment, and what it sets there for NCCL to read later, is in
 * {@link org.millrace.plugin.net.PluginConfiguration}.
 */
@NullMarked
package org.millrace.plugin.net;

import org.jspecify.annotations.NullMarked;

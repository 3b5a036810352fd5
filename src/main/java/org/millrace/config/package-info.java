/**
 * The settings: what can be set, to what, and where a value came from.
 *
 * <p>
 * A {@link org.millrace.config.Configuration} is read once, is immutable, and refuses what it does not understand.
 * Names are NCCL's where NCCL has one for the same thing, and begin with {@code MILLRACE_} otherwise. What only the
 * plugin for libnccl reads is in {@link org.millrace.config.PluginSettings}; it reads the environment alone, by
 * {@link org.millrace.config.EnvironmentSettings}. This room uses no other.
 */
@NullMarked
package org.millrace.config;

import org.jspecify.annotations.NullMarked;

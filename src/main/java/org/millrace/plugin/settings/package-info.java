/**
 * What the plugin reads from the process's environment, and what it sets there for NCCL to read later.
 *
 * <p>
 * Names, types and defaults are those of {@code org.millrace.config.Settings}; here is only what follows from the
 * values. Nothing else of the plugin reads or writes the environment.
 */
@NullMarked
package org.millrace.plugin.settings;

import org.jspecify.annotations.NullMarked;

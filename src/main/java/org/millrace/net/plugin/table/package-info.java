/**
 * A library with NCCL's network table: what its versions look like
 * ({@link org.millrace.net.plugin.table.TableVersion}), how its functions are called
 * ({@link org.millrace.net.plugin.table.NetTable}), how it is loaded and what devices it has
 * ({@link org.millrace.net.plugin.table.PluginLibrary}), and what it logs.
 */
@NullMarked
package org.millrace.net.plugin.table;

import org.jspecify.annotations.NullMarked;

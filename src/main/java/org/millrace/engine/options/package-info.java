/**
 * What a communicator's ranks have agreed on, and how it runs: channels, algorithms, protocols, sizes. All is decided
 * once, when ranks have met. Uses {@code bootstrap} and the configuration.
 */
@NullMarked
package org.millrace.engine.options;

import org.jspecify.annotations.NullMarked;

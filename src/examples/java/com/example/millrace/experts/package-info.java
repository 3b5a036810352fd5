/**
 * Exchange of a mixture of experts, as DeepEP does it with NCCL's GIN, on the emulated device. Tokens are dispatched to
 * the ranks of their experts, and the experts' results are combined on the ranks that own the tokens.
 *
 * <p>
 * Every channel has a circular buffer for each pair of ranks. A sender puts tokens into the peer's buffer and adds
 * their number to the peer's tail signal. The receiver uses them and adds their number to the sender's head signal. A
 * channel's context is its number modulo the number of contexts.
 *
 * <p>
 * {@link com.example.millrace.experts.ExpertExchange} is flat, {@link com.example.millrace.experts.HybridExchange}
 * forwards within hosts, and {@link com.example.millrace.experts.LowLatencyExchange} has a place for every token.
 */
package com.example.millrace.experts;

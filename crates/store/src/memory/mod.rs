//! Long-term memory: analysis, postings and ranking.

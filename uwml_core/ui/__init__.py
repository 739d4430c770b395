"""Everything that needs Streamlit: frame, cached readers, charts that stay alive."""

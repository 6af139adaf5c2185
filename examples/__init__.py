"""Complete examples of what Windrow is for."""

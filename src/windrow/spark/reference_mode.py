def build_reference(gateway, bound): raise NotImplementedError

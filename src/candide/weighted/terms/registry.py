"""The kinds of terms by name, one line each. They are proposed in this order."""

from candide.registry import Registry
from candide.weighted.terms.base import JointTerm

TERMS: Registry[JointTerm] = Registry(
    "candide.weighted.terms",
    {
        "discriminant": "Discriminant",
        "prototype": "PrototypeTerm",
        "interaction": "Interaction",
    },
)
